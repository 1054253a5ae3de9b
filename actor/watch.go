package actor

import (
	"hash/fnv"
	"strconv"
)

// watchTopics is how many topics the changes of actors are spread over: few
// enough for the database to carry, many enough that those who watch one actor
// are seldom woken by others.
const watchTopics = 64

func watchTopic(ref Ref) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(ref.String()))
	return "actor/" + strconv.Itoa(int(h.Sum32()%watchTopics))
}
