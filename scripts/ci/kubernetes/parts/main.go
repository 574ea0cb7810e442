// The parts of a cluster that Kubernetes leaves to others, in one binary, which runs the program that it is called as.
package main

import (
	"log"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var programs = map[string]func(){"coredns": serveNames, "netpol": enforcePolicies, "volumes": makeVolumes}

func main() {
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		log.Fatalf("%s is no part of a cluster", name)
	}
	program()
}

// must exits if the program cannot continue; the program's parent restarts it.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func connect(kubeconfig string) *kubernetes.Clientset {
	return must(kubernetes.NewForConfig(must(clientcmd.BuildConfigFromFlags("", kubeconfig))))
}
