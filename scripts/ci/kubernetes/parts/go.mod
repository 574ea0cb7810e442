module parts

go 1.26.0

require (
	github.com/cloudnativelabs/kube-router/v2 v2.10.0
	github.com/coredns/coredns v1.14.7
	sigs.k8s.io/sig-storage-lib-external-provisioner/v13 v13.0.0
)

// kube-router requires a commit between two releases, which not every module proxy has.
replace github.com/vishvananda/netlink => github.com/vishvananda/netlink v1.3.1
