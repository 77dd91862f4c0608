export { type AgentFacts, own as ownFact } from './agent-facts.ts';
export { type BodyFault, type DeferredText, resourceBodyFaults } from './body.ts';
export { type LookupElement, type LookupValues, lookupList } from './composition/lookups.ts';
export {
  type Requires,
  requirementFaults,
  requiresOf,
  withRequired,
} from './composition/requires.ts';
export { conflictsBetween, type ModuleConflict } from './conflicts-between.ts';
export type {
  Conditions,
  Json,
  Lookup,
  ModuleDocument,
  OnlyIf,
  Parameter,
  ParameterType,
  ResourceDeclaration,
} from './document.ts';
export { escapeExpressions, parseExpressions } from './expression/expression.ts';
export { type ExpressionFunction, expressionFunctions } from './expression/functions/index.ts';
export { standardFunctions } from './expression/functions/standard.ts';
export { maximumSteps, maximumStepsOfAgent } from './expression/meter.ts';
export { passingFunctions } from './expression/secret-flow.ts';
export type { ModuleFolder } from './files/file-uses.ts';
export {
  filePathFault,
  folderLimits,
  type ModuleFile,
  type ModuleFiles,
  moduleFileName,
} from './files/module-file.ts';
export { type KindField, kindFields } from './kind-fields.ts';
export { isNoHome } from './kinds/accounts.ts';
export { composePathFault, composeVariableName, maximumComposePath } from './kinds/containers/compose.ts';
export {
  composeFileFault,
  composeReferences,
  maximumComposeBytes,
  readsEnvironmentFiles,
} from './kinds/containers/compose-file.ts';
export { canonicalLocale } from './kinds/format.ts';
export {
  executableKinds,
  identify,
  isResourceType,
  type Kind,
  kindExample,
  kinds,
  type Platform,
  type ResourceBodies,
  type ResourceBody,
  type ResourceType,
  resourceTypes,
  type Trigger,
} from './kinds.ts';
export { type Order, stableOrder } from './order.ts';
export type { Layer, Layers } from './parameters/layers.ts';
export { moduleValueFaults } from './parameters/value-checks.ts';
export { type ValueReport, valueReports } from './parameters/value-report.ts';
export { declaredName, type ParsedModule, parseModule, positionIn, templateFilesOf } from './parse.ts';
export { type Resolution, type ResolutionRequest, resolveDesiredSet } from './resolve.ts';
export type { ResolvedResource, SourceContent } from './resolved.ts';
export { declaredOrder, type ResourceOrder, resolvedOrder } from './resource-order.ts';
export { moduleJsonSchema, moduleSchemaId } from './schema.ts';
export {
  type FilledResources,
  fillSecrets,
  fillVerifications,
  SecretBudget,
  secretNames,
  type UnfilledBody,
  type UnfilledResource,
  type UnfilledVerification,
} from './secrets.ts';
export { pointer, pointerKeys } from './source/json-pointer.ts';
export { moduleLimits } from './source/source.ts';
