package galera

import (
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

func ready(eng *perdure.Engine) int {
	mux := http.NewServeMux()
	health.New(eng, nil).Mount(mux)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return answer.Code
}
