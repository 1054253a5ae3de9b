package hook_test

const childVariable = "PERDURE_TEST_HOOK_CHILD"

func child() int { return 2 }
