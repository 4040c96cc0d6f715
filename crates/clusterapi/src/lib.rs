//! Cluster API core, kubeadm bootstrap and kubeadm control plane.
