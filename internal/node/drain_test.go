package node_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/node"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// run runs a node. end drains it and returns when it has ended.
func run(t *testing.T, eng *perdure.Engine, o node.Options) (n *node.Node, end func()) {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	n, err := node.New(t.Context(), eng, o)
	enginetest.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(end)
	return n, end
}

// balancer sends requests to the nodes whose last polls succeeded. Three failed polls take
// a node out.
type balancer struct {
	mu     sync.RWMutex // a poll and requests exclude each other, so that the test does not depend on the speed of the machine
	urls   []string
	failed []int
	next   atomic.Int64
}

func (b *balancer) poll(ctx context.Context) {
	for ctx.Err() == nil {
		for i, url := range b.urls {
			b.mu.Lock()
			b.failed[i]++
			if answer, err := http.Get(url + "/readyz"); err == nil {
				if answer.StatusCode == http.StatusOK {
					b.failed[i] = 0
				}
				_ = answer.Body.Close()
			}
			b.mu.Unlock()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// send sends one request to a node in rotation.
func (b *balancer) send(client *http.Client) (status int, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for {
		i := int(b.next.Add(1)) % len(b.urls)
		if b.failed[i] >= 3 {
			continue
		}
		answer, err := client.Get(b.urls[i] + "/v1/pauses")
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
}

// The listener is open until the load balancer has noticed that the node is not ready. The
// request that runs then is answered.
func TestAGracefulStopRefusesNoRequestOfALoadBalancer(t *testing.T) {
	t.Parallel()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	inside, release := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(inside); <-release })
	one, end := run(t, eng, node.Options{Routes: map[string]http.Handler{"GET /v1/dev/slow": slow}})
	other, _ := run(t, eng, node.Options{})
	b := &balancer{urls: []string{one.URL(), other.URL()}, failed: make([]int, 2)}
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	work.Go(func() { b.poll(ctx) })
	var sent atomic.Int64
	for i := range 4 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
		defer client.CloseIdleConnections()
		work.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				if status, err := b.send(client); err != nil || status != http.StatusOK {
					t.Errorf("request: %d %v", status, err)
					return
				}
				sent.Add(1)
			}
		})
	}
	enginetest.Eventually(t, "requests are sent", func() bool { return sent.Load() > 50 })
	running := make(chan int, 1)
	go func() {
		status, _ := get(t, one.URL()+"/v1/dev/slow")
		running <- status
	}()
	<-inside
	over := make(chan struct{})
	go func() { defer close(over); end() }()
	enginetest.Eventually(t, "the balancer has noticed", func() bool {
		b.mu.RLock()
		defer b.mu.RUnlock()
		return b.failed[0] >= 3
	})
	close(release)
	if status := <-running; status != http.StatusOK {
		t.Errorf("the running request: %d", status)
	}
	<-over
	before := sent.Load()
	enginetest.Eventually(t, "the other node serves", func() bool { return sent.Load() > before+20 })
	cancel()
	work.Wait()
}

// A node that no load balancer polls does not wait for one.
func TestANodeThatIsNotPolledStopsImmediately(t *testing.T) {
	t.Parallel()
	n, end := run(t, enginetest.New(t, enginetest.SQLite).Open(t, nil), node.Options{DrainGrace: time.Hour, DrainTimeout: time.Hour})
	if status, _ := get(t, n.URL()+"/readyz"); status != http.StatusOK { // once: a person
		t.Errorf("readyz: %d", status)
	}
	end()
}
