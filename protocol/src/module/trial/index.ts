export { givenLayers } from '../parameters.ts';
export { readAgentFacts, readParameters } from './agent-facts.ts';
export { type Explained, type ExplainedResource, explainDesiredSet, type Place } from './explain.ts';
export { readModuleTests } from './module-test.ts';
export { type Mismatch, runModuleTest, type TestOutcome } from './run-test.ts';
export { tryExpression } from './try-expression.ts';
