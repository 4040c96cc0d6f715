//! Cluster API infrastructure provider for OpenStack.
