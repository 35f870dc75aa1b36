"""Elections: campaigns, votes, failure detection, leader discovery, epoch announcements."""
