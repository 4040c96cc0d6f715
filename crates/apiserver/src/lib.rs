//! A Kubernetes-compatible API server as a library, on SQLite or in memory.
