package galera

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/health"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/server"
)

// The doctor reports the cluster. A node without the others is not ready.
func testHealth(t *testing.T, cluster *testdb.Cluster) {
	urls := cluster.Databases(t)
	eng := openAll(t, urls[:1], nil)[0]
	if found := clusterResult(t, eng); found.Severity != doctor.OK || !strings.Contains(found.Found, "3 nodes") {
		t.Errorf("the doctor found %+v", found)
	}
	if code := ready(eng); code != http.StatusOK {
		t.Errorf("a node of the cluster: status %d", code)
	}
	if text := overview(t, eng); !strings.Contains(text, "3 nodes") {
		t.Errorf("the overview says of the cluster: %q", text)
	}
	for _, node := range cluster.Nodes[1:] {
		must(t, node.Kill())
	}
	for deadline := time.Now().Add(testdb.Patience); ready(eng) == http.StatusOK; torture.Pause(t.Context(), 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a node without the others is ready")
		}
	}
}

func clusterResult(t *testing.T, eng *perdure.Engine) doctor.Result {
	t.Helper()
	results, err := doctor.Run(t.Context(), eng, doctor.Options{NoOutbox: true})
	must(t, err)
	for _, r := range results {
		if r.Name == "cluster" {
			return r
		}
	}
	t.Fatal("the doctor does not mention the cluster")
	return doctor.Result{}
}

// overview returns what the API's overview says of the cluster.
func overview(t *testing.T, eng *perdure.Engine) string {
	t.Helper()
	srv, err := server.New(eng, nil)
	must(t, err)
	response := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/v1/overview", nil)
	request.Host, request.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
	srv.ServeHTTP(response, request)
	var found struct{ Cluster string }
	if err := json.Unmarshal(response.Body.Bytes(), &found); err != nil || response.Code != http.StatusOK {
		t.Fatalf("status %d: %s", response.Code, response.Body)
	}
	return found.Cluster
}

func ready(eng *perdure.Engine) int {
	mux := http.NewServeMux()
	health.New(eng, nil).Mount(mux)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return answer.Code
}
