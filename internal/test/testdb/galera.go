package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Cluster is a MariaDB Galera cluster that this process has started. Its nodes can be
// stopped, killed and restarted, as long as one of them runs.
type Cluster struct {
	Nodes []*Server
}

// Galera starts a cluster of MariaDB servers for this test only. It takes some CPU seconds.
func Galera(t testing.TB, nodes int) *Cluster {
	t.Helper()
	Only(t, string(MariaDB))
	c, err := startCluster(nodes)
	require(t, err)
	t.Cleanup(func() {
		for i, node := range c.Nodes {
			if t.Failed() {
				t.Logf("the end of the log of node %d:\n%s", i, node.LogTail())
			}
		}
		if err := c.close(); err != nil {
			t.Errorf("close cluster: %v", err)
		}
	})
	return c
}

// Databases creates an empty database for the test and returns its URLs, one for each node.
// It is not dropped: the cluster ends with the test.
func (c *Cluster) Databases(t testing.TB) []string {
	t.Helper()
	name := databaseName()
	if err := c.Nodes[0].create(name, emptyTemplate); err != nil {
		t.Fatalf("create database: %v", err)
	}
	urls := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		var err error
		if urls[i], err = withDatabase(node.url, name); err != nil {
			t.Fatal(err)
		}
		if err := node.catchUp(); err != nil {
			t.Fatal(err)
		}
	}
	return urls
}

// catchUp waits until the node has applied everything that the cluster has committed.
func (s *Server) catchUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	db, err := s.database()
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "set session wsrep_sync_wait = 1"); err != nil {
		return err
	}
	var one int
	return conn.QueryRowContext(ctx, "select 1").Scan(&one)
}

// galera is the program of one node.
type galera struct {
	mariadb
	provider string
	// peers are the ports on which the nodes communicate, self that of this node.
	peers []int
	self  int
	// missed is the port on which the node receives the changes that it has missed, copy the
	// port on which it receives a copy of all data.
	missed, copy int
	// first is true until the node has started the cluster.
	first bool
	// position is the last change that the data of a killed node has.
	position string
}

func findGalera(path string) (*galera, error) {
	p, err := findMariaDB(false, path)
	if err != nil {
		return nil, err
	}
	dirs := []string{"/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib/galera-4", "/opt/homebrew/lib"}
	for _, dir := range dirs {
		file := filepath.Join(dir, "libgalera_smm.so")
		if _, err := os.Stat(file); err == nil {
			return &galera{mariadb: *p.(*mariadb), provider: file}, nil
		}
	}
	return nil, &MissingError{Program: "libgalera_smm.so", Install: "Galera 4 (Debian: apt-get install galera-4 rsync)"}
}

func startCluster(nodes int) (c *Cluster, err error) {
	program, err := findGalera(os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	c = &Cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start cluster: %w", err), c.close())
			c = nil
		}
	}()
	ports := make([]int, nodes)
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return c, err
		}
	}
	for i := range nodes {
		node := *program
		node.peers, node.self, node.first = ports, ports[i], i == 0
		if node.missed, err = freePort(); err != nil {
			return c, err
		}
		if node.copy, err = freePort(); err != nil {
			return c, err
		}
		s, err := startNode(&node)
		if err != nil {
			return c, err
		}
		c.Nodes = append(c.Nodes, s)
	}
	return c, nil
}

// startNode starts a node.
func startNode(p *galera) (*Server, error) {
	config := Config{Engine: MariaDB}
	dir, err := newDirectory(config)
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, program: p, dir: dir, templates: map[string]*template{}, pools: map[string]*pool{}}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (c *Cluster) close() error {
	var errs []error
	for _, node := range c.Nodes {
		errs = append(errs, node.Close())
	}
	return errors.Join(errs...)
}

// prepare creates the data of the first node. The other nodes get a copy when they join.
func (g *galera) prepare(dir *directory) error {
	if g.first {
		return g.mariadb.prepare(dir)
	}
	if err := g.writeInit(dir); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(dir.data(), 0o700), dir.owner.own(dir.data()))
}

func (g *galera) arguments(dir *directory, port int) []string {
	address := "gcomm://"
	if !g.first {
		var peers []string
		for _, p := range g.peers {
			peers = append(peers, fmt.Sprintf("127.0.0.1:%d", p))
		}
		address += strings.Join(peers, ",")
	}
	g.first = false // if it is started again, it joins the others
	args := append(g.mariadb.arguments(dir, port),
		"--binlog-format=ROW",
		"--innodb-autoinc-lock-mode=2",
		"--wsrep-on=ON",
		"--wsrep-provider="+g.provider,
		"--wsrep-cluster-name=perdure",
		"--wsrep-cluster-address="+address,
		"--wsrep-node-address=127.0.0.1",
		fmt.Sprintf("--wsrep-node-name=node-%d", g.self),
		"--wsrep-sst-method=rsync",
		fmt.Sprintf("--wsrep-sst-receive-address=127.0.0.1:%d", g.copy),
		fmt.Sprintf("--wsrep-provider-options=base_host=127.0.0.1;base_port=%d;gmcast.listen_addr=tcp://127.0.0.1:%d;ist.recv_addr=127.0.0.1:%d;gcache.size=64M;pc.recovery=no", g.self, g.self, g.missed),
	)
	if g.position != "" {
		args = append(args, "--wsrep-start-position="+g.position)
	}
	return args
}

var recovered = regexp.MustCompile(`Recovered position:? ([0-9a-f-]+:-?[0-9]+)`)

// Rejoin starts a node that was killed. It first finds the last change that the data of the
// node has, as the scripts of MariaDB do, so that only later changes are sent to it.
func (c *Cluster) Rejoin(i int) error {
	s := c.Nodes[i]
	g := s.program.(*galera)
	g.position = ""
	out, err := command(s.dir, append(g.arguments(s.dir, s.port), "--wsrep-recover")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("recover node: %w\n%s", err, tail(out))
	}
	if found := recovered.FindSubmatch(out); found != nil {
		g.position = string(found[1])
	}
	return s.Restart()
}
