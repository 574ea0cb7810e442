package main

import (
	"context"
	"log"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// folders creates a folder on the node for each claim. Any user may write to it, because the kubelet does not assign a
// folder of the node to a group.
type folders struct{ parent string }

// makeVolumes KUBECONFIG PARENT
func makeVolumes() {
	if len(os.Args) != 3 {
		log.Fatal("volumes KUBECONFIG PARENT")
	}
	provisioner := controller.NewProvisionController(context.Background(), connect(os.Args[1]), "berth.test/folder",
		folders{os.Args[2]}, controller.LeaderElection(false))
	provisioner.Run(context.Background())
}

func (f folders) Provision(
	_ context.Context, options controller.ProvisionOptions,
) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	path := filepath.Join(f.parent, options.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	// The umask has reduced the folder's mode.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	storage := options.PVC.Spec.Resources.Requests[v1.ResourceStorage]
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: v1.PersistentVolumeSpec{
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: storage},
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			PersistentVolumeSource:        v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}},
		},
	}, controller.ProvisioningFinished, nil
}

func (f folders) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	return os.RemoveAll(filepath.Join(f.parent, volume.Name))
}
