package main

import (
	"log"
	"sync"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/cloudnativelabs/kube-router/v2/pkg/svcip"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// enforcePolicies enforces the NetworkPolicies of the pods on this node: kube-router, with its flags, without its
// routing.
func enforcePolicies() {
	config := options.NewKubeRouterConfig()
	config.AddFlags(pflag.CommandLine)
	pflag.Parse()
	client := connect(config.Kubeconfig)

	forever := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(forever)
	factory.WaitForCacheSync(forever)

	services := must(svcip.NewValidator(svcip.Config{
		ClusterIPCIDRs: config.ClusterIPCIDRs, EnableIPv4: config.EnableIPv4, EnableIPv6: config.EnableIPv6,
	}))
	tables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		log.Fatal(err)
	}
	controller := must(netpol.NewNetworkPolicyController(
		client, config, pods, policies, namespaces, &sync.Mutex{}, nil, tables, sets, services))
	for _, watched := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{pods, controller.PodEventHandler},
		{namespaces, controller.NamespaceEventHandler},
		{policies, controller.NetworkPolicyEventHandler},
	} {
		must(watched.informer.AddEventHandler(watched.handler))
	}

	// Nothing queries its health, but it blocks until each heartbeat is received.
	beats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range beats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(beats, forever, &running)
}
