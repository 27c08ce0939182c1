"""What leaves the estimator: ROS messages, MCAP files, pictures in Rerun, the plots of a run."""
