"""TLS, certificates and call authorization."""
