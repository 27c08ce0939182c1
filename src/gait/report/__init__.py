"""What people read: tables, charts, HTML reports, the Rerun view. Data comes in, nothing is computed here."""
