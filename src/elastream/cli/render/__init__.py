"""What commands show: tables, plots, progress and logs."""
