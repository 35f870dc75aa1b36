"""Analysis jobs: functions from DataFrame to DataFrame, one module per job."""
