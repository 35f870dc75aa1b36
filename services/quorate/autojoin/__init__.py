"""The Kubernetes operator: keeps the voters in step with the replicas of a StatefulSet."""
