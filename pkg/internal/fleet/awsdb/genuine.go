package awsdb

import (
	"bytes"
	"context"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// checksumHeader has the CRC-32 of a reply's body.
const checksumHeader = "X-Amz-Crc32"

// maxReply bounds the body of a reply: 16 MB of items, in the longest form of JSON.
const maxReply = 64 << 20

// genuineClient turns answers that are not DynamoDB's into errors, and those that are not as it
// sent them. It reads each answer whole: the SDK compares checksums when it has used the answer.
type genuineClient struct{ next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c genuineClient) Do(request *http.Request) (*http.Response, error) {
	response, err := c.next.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read, or nothing of it is of use
	if !isGenuine(response) {
		return nil, &strangerError{response.StatusCode, response.Header.Get("Content-Type")}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	sum := response.Header.Get(checksumHeader)
	switch {
	case err != nil:
		return nil, err
	case len(body) == maxReply:
		return nil, incomplete("a reply", "an end")
	case sum != "" && sum != strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10):
		return nil, incomplete("a reply", "a body with the checksum "+strconv.Quote(sum[:min(len(sum), 20)]))
	case response.StatusCode == http.StatusOK && !isSuccess(body):
		return nil, incomplete("a reply of status 200", "an object of JSON that is no error")
	}
	whole := *response
	whole.Body = io.NopCloser(bytes.NewReader(body))
	return &whole, nil
}

// isSuccess reports whether a body may be that of a success: of some calls DynamoDB sends an empty
// object, and the SDK takes an empty body and an error for one as well.
func isSuccess(body []byte) bool {
	return bytes.HasPrefix(body, []byte("{")) && !bytes.HasPrefix(body, []byte(`{"__type"`))
}

// isGenuine reports whether an answer has the headers that all of DynamoDB's have, and a status
// that it uses.
func isGenuine(r *http.Response) bool {
	if r.StatusCode > http.StatusOK && r.StatusCode < http.StatusMultipleChoices {
		return false
	}
	if r.Header.Get("X-Amzn-Requestid") != "" || r.Header.Get(checksumHeader) != "" {
		return true
	}
	return r.StatusCode >= 300 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json")
}

// markedCredentials marks the errors of a source of credentials.
type markedCredentials struct{ next aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (m markedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := m.next.Retrieve(ctx)
	if err != nil {
		return c, &credentialsError{err}
	}
	return c, nil
}
