select t.requirement, t.test, t.expected, t.outcome, t.passed from executor.validation_tests() as t
