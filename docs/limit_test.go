package docs_test

import (
	"fmt"
	"log"

	"github.com/perdure/perdure/limit"
)

func Example_pause() {
	eng := openBank()
	defer eng.Close()

	err := limit.Pause(ctx, eng, "queue:mail", &limit.PauseOptions{Reason: "provider is down", Actor: "ada"})
	if err != nil {
		log.Fatal(err)
	}
	pauses, err := limit.Pauses(ctx, eng)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range pauses {
		fmt.Println(p.Target, "is paused:", p.Reason)
	}
	if err := limit.Resume(ctx, eng, "queue:mail"); err != nil {
		log.Fatal(err)
	}
	// Output: queue:mail is paused: provider is down
}
