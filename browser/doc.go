// Package browser tests the dashboard in a real Chromium. It is a module of its
// own, for what it takes to drive a browser.
package browser
