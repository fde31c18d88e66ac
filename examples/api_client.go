// SPDX-License-Identifier: MIT
//
// Calls under leases of the decision API, with Go's standard library alone.
//
// usage: go run api_client.go ACCOUNT URL [COUNT] [CONTROL]
//
// COUNT calls at once, each waiting up to 30 s for its lease. CONTROL is http://127.0.0.1:7601 or unix:PATH.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Refused is a decision: its reason, and when to ask again where that is known.
type Refused struct {
	Reason       string  `json:"reason"`
	Type         string  `json:"type"`
	Detail       string  `json:"detail"`
	RetryAfterMs float64 `json:"retryAfterMs"`
}

func (r *Refused) Error() string { return r.Reason + ": " + r.Detail }

// Ration speaks to a control port.
type Ration struct {
	base   string
	token  string
	client *http.Client
}

// NewRation takes http://HOST:PORT or unix:PATH.
func NewRation(control, token string) *Ration {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	base := control
	if strings.HasPrefix(control, "unix:") {
		path := strings.TrimPrefix(control, "unix:")
		base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	return &Ration{base: base, token: token, client: &http.Client{Transport: transport}}
}

func (r *Ration) ask(ctx context.Context, operation string, body, answer any, key string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, "POST", r.base+"/v1/"+operation, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		refused := &Refused{}
		if err := json.NewDecoder(response.Body).Decode(refused); err != nil {
			return err
		}
		return refused
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// Told is how a call ended.
type Told struct {
	Lease   string              `json:"lease"`
	Outcome string              `json:"outcome"`
	Status  int                 `json:"status,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
}

type acquire struct {
	Account string `json:"account"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Timeout int64  `json:"timeout"`
}

type granted struct {
	Lease string  `json:"lease"`
	TTLMs float64 `json:"ttlMs"`
}

// Lease runs work under a lease, which is renewed while it lasts.
func (r *Ration) Lease(asked acquire, work func() (Told, error)) (Told, error) {
	// The same key on every attempt: an answer that was lost on the way costs no second lease.
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return Told{}, err
	}
	key := hex.EncodeToString(random)
	patience := time.Duration(asked.Timeout)*time.Millisecond + 10*time.Second
	var lease granted
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := r.ask(ctx, "acquire", asked, &lease, key)
		cancel()
		if err == nil {
			break
		}
		var refused *Refused
		if errors.As(err, &refused) || attempt == 2 {
			return Told{}, err
		}
	}

	ended := make(chan struct{})
	var renewer sync.WaitGroup
	renewer.Add(1)
	go func() {
		defer renewer.Done()
		ticker := time.NewTicker(time.Duration(lease.TTLMs/3) * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				// One that was lost is asked again in time; of one that was taken back the release will tell.
				_ = r.ask(context.Background(), "renew", map[string]string{"lease": lease.Lease}, &struct{}{}, "")
			}
		}
	}()

	told, err := work()
	close(ended)
	renewer.Wait()
	told.Lease, told.Outcome = lease.Lease, "success"
	if err != nil {
		told.Outcome = "failure"
	}
	if released := r.ask(context.Background(), "release", told, &struct{}{}, ""); err == nil {
		err = released
	}
	return told, err
}

func call(ration *Ration, account string, to *url.URL) (string, error) {
	asked := acquire{Account: account, Method: "GET", Path: to.EscapedPath(), Timeout: 30000}
	told, err := ration.Lease(asked, func() (Told, error) {
		client := http.Client{Timeout: 30 * time.Second}
		response, err := client.Get(to.String())
		if err != nil {
			return Told{}, err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return Told{Status: response.StatusCode, Headers: response.Header}, err
	})
	var refused *Refused
	if errors.As(err, &refused) {
		return refused.Reason, nil
	}
	return strconv.Itoa(told.Status), err
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: api_client ACCOUNT URL [COUNT] [CONTROL]")
		os.Exit(2)
	}
	arguments := append(os.Args[1:], "1", "http://127.0.0.1:7601")
	if len(os.Args) == 4 {
		arguments = append(os.Args[1:], "http://127.0.0.1:7601")
	}
	to, bad := url.Parse(arguments[1])
	count, odd := strconv.Atoi(arguments[2])
	if bad != nil || odd != nil {
		fmt.Fprintln(os.Stderr, "api_client: URL or COUNT cannot be read")
		os.Exit(2)
	}
	ration := NewRation(arguments[3], os.Getenv("RATION_TOKEN"))
	results := make(map[string]int)
	var lock sync.Mutex
	var calls sync.WaitGroup
	for i := 0; i < count; i++ {
		calls.Add(1)
		go func() {
			defer calls.Done()
			result, err := call(ration, arguments[0], to)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				result = "error"
			}
			lock.Lock()
			results[result]++
			lock.Unlock()
		}()
	}
	calls.Wait()
	names := make([]string, 0, len(results))
	for name := range results {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("%d x %s\n", results[name], name)
	}
}
