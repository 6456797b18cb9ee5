// Package deploy has what it takes to run dueq: images, units, manifests, alerts
// and a dashboard. Its tests hold them to the code.
package deploy
