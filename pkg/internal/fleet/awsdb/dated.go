package awsdb

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// datedClient passes the Date of every reply to a clock. A reply without one, or with
// one that cannot be read, is ignored.
type datedClient struct {
	next  aws.HTTPClient
	clock *Clock
}

// Do implements aws.HTTPClient.
func (d datedClient) Do(request *http.Request) (*http.Response, error) {
	sent := d.clock.Now()
	response, err := d.next.Do(request)
	if err != nil {
		return nil, err
	}
	received := d.clock.Now()
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		d.clock.Observe(sent, received, date)
	}
	return response, nil
}
