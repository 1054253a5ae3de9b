package fsm

import "github.com/perdure/perdure"

// live represents every status that is not final.
const live Status = "not finished"

// stateError returns the error of an operation that the status of an instance does not
// allow.
func stateError(id string, status Status) error {
	return &perdure.StateError{Kind: "instance", ID: id, Status: string(status), Finished: status.Finished()}
}
