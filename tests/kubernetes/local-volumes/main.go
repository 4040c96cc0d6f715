// Provisions volumes of the storage class `local`: directories under --directory, each usable on the node that the scheduler chose.
// All nodes share this machine's file system, so one process makes the directories of all.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	name = "ferrostack.dev/local-volumes"
	host = "kubernetes.io/hostname"
)

type provisioner struct {
	directory string
}

func (p provisioner) Provision(_ context.Context, options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	if options.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, fmt.Errorf("the storage class needs volumeBindingMode WaitForFirstConsumer")
	}
	if mode := options.PVC.Spec.VolumeMode; mode != nil && *mode != v1.PersistentVolumeFilesystem {
		return nil, controller.ProvisioningFinished, fmt.Errorf("volumeMode %s: only Filesystem is provided", *mode)
	}
	path := filepath.Join(p.directory, options.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningNoChange, err
	}
	// Whatever user the pod runs as, and without the process's umask.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, controller.ProvisioningNoChange, err
	}
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity:                      options.PVC.Spec.Resources.Requests,
			PersistentVolumeSource:        v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{
					Key: host, Operator: v1.NodeSelectorOpIn, Values: []string{options.SelectedNodeName},
				}},
			}}}},
		},
	}
	return volume, controller.ProvisioningFinished, nil
}

func (p provisioner) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	return os.RemoveAll(filepath.Join(p.directory, volume.Name))
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file with the access to the cluster")
	directory := flag.String("directory", "", "where the directories of volumes are made")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	controller.NewProvisionController(context.Background(), client, name, provisioner{*directory}, controller.LeaderElection(false)).Run(context.Background())
}
