"""Bags: ROS 1, ROS 2 (sqlite3 and MCAP) and plain MCAP, read without ROS."""
