package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// newDoor returns a proxy of the server of a client of S3. pass reports whether a request goes on, or is answered.
func newDoor(t *testing.T, client *s3.Client, pass func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	place, err := url.Parse(aws.ToString(client.Options().BaseEndpoint))
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(place)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pass(w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(door.Close)
	return door.URL
}
