//go:build unix

package testdb

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user that servers run as. The database programs refuse to run as root, so
// root runs them as another user. All other users run them as themselves, which is the zero
// value.
type owner struct {
	uid, gid uint32 // 0 for the current user
}

func serverOwner() (owner, error) {
	if os.Getuid() != 0 {
		return owner{}, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return owner{}, fmt.Errorf("database servers refuse to run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return owner{}, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return owner{}, err
	}
	return owner{uid: uint32(uid), gid: uint32(gid)}, nil
}

func (o owner) ourselves() bool { return o == owner{} }

// apply makes a command run as the owner.
func (o owner) apply(a *syscall.SysProcAttr) {
	if !o.ourselves() {
		a.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
}

// own gives the file to the owner.
func (o owner) own(path string) error {
	if o.ourselves() {
		return nil
	}
	return os.Chown(path, int(o.uid), int(o.gid))
}

// canEnter checks that the owner can reach path: other users can enter each directory on
// the way.
func (o owner) canEnter(path string) error {
	if o.ourselves() {
		_, err := os.Stat(path)
		return err
	}
	for p := path; ; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s cannot be entered by the user that servers run as", p)
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}
