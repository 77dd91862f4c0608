import { hash } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import type { Agent, Assignment } from '@muster/protocol/http';
import {
  type AgentFacts,
  type Layer,
  type Layers,
  type ModuleDocument,
  type Requires,
  resolveDesiredSet,
  type UnfilledResource,
  type UnfilledVerification,
  withRequired,
} from '@muster/protocol/module';
import { isEmpty as isEmptySelector, matchesSelector, parseSelector, type Selector } from '@muster/protocol/selector';
import { type JsonText, toJson } from '../../store/json-text.ts';
import { type Lookups, noLookups } from './lookups.ts';

export interface DesiredModules {
  /**
   * The modules in order, without duplicates: first those from assignments, by assignment name, then the requested
   * modules. Each module comes after the modules that it requires.
   */
  modules: string[];
  /** Values that assignments set for the parameters of these modules, by assignment name. */
  layers: Layers;
  /** Modules that this apply skips, and the modules that they require. The apply does not remove their resources. */
  keep: string[];
}

const selectors = new Map<string, Selector | null>();

/**
 * Returns the parsed selector; null if it is invalid. Cached, because a few selectors are matched against every agent.
 */
function selectorOf(text: string): Selector | null {
  let selector = selectors.get(text);
  if (selector === undefined) {
    const parsed = parseSelector(text);
    selector = parsed.ok ? parsed.selector : null;
    if (selectors.size >= 1000) selectors.clear();
    selectors.set(text, selector);
  }
  return selector;
}

export function assignmentMatches(assignment: Assignment, agent: Pick<Agent, 'tags' | 'attributes'>): boolean {
  const selector = selectorOf(assignment.selector);
  return selector !== null && !isEmptySelector(selector) && matchesSelector(selector, agent);
}

export interface DesiredSetRequest {
  modules: readonly string[];
  /** The modules that each module requires; by default, none. */
  requires?: Requires;
  /** Whether a maintenance window that matches the agent is open. */
  windowOpen: boolean;
  /**
   * Name of the requested assignment. Its modules are included even if the assignment audits or waits for a maintenance
   * window.
   */
  including?: string;
}

/**
 * Determines the desired modules of an agent.
 * @param assignments every assignment, by name
 */
export function desiredModules(
  assignments: readonly Assignment[],
  agent: Pick<Agent, 'tags' | 'attributes'>,
  request: DesiredSetRequest,
): DesiredModules {
  const modules = new Set<string>();
  const keptModules = new Set<string>();
  // Maps, because a module or parameter may be named `constructor`.
  const layers = new Map<string, Map<string, Layer[]>>();
  for (const assignment of assignments) {
    if (!assignmentMatches(assignment, agent)) continue;
    const enforced = assignment.mode === 'enforce' && (!assignment.window_only || request.windowOpen);
    const counts = enforced || assignment.name === request.including;
    for (const module of assignment.modules) (counts ? modules : keptModules).add(module);
    if (!counts) continue;
    for (const [module, values] of Object.entries(assignment.parameters)) {
      const ofModule = layers.get(module) ?? new Map<string, Layer[]>();
      layers.set(module, ofModule);
      for (const [parameter, value] of Object.entries(values)) {
        const { name, precedence = 0 } = assignment;
        const layer: Layer = { value, from: 'assignment', name, precedence };
        ofModule.set(parameter, [...(ofModule.get(parameter) ?? []), layer]);
      }
    }
  }
  const { requires = new Map() } = request;
  const desired = withRequired([...modules, ...request.modules], requires);
  return {
    modules: desired,
    // An assignment may set parameters of modules that other assignments assign, and this agent may not have those
    // modules.
    layers: Object.fromEntries(
      desired.flatMap((module) => {
        const values = layers.get(module);
        return values === undefined ? [] : [[module, Object.fromEntries(values)] as const];
      }),
    ),
    keep: withRequired([...keptModules], requires).filter((module) => !desired.includes(module)),
  };
}

/** Reports whether an agent's desired state is different inside a maintenance window. */
export const dependsOnWindow = (
  assignments: readonly Assignment[],
  agent: Pick<Agent, 'tags' | 'attributes'>,
): boolean =>
  assignments.some(
    (assignment) => assignment.mode === 'enforce' && assignment.window_only && assignmentMatches(assignment, agent),
  );

/** The stored form of an operation's desired state. It contains references to secrets, never their values. */
export interface Payload {
  resources: UnfilledResource[];
  keep_modules: string[];
  /** Checks to run after an apply. Absent if no module declares any. */
  verify?: UnfilledVerification[];
  /** Digests of the lookups that the resolution used, by `module:name`. Absent if no module declares any. */
  lookups?: Lookups['digests'];
}

/**
 * Resolves a desired state. The caller checks the secrets with `SecretAccess`; dispatch checks them again.
 * @throws MusterError module_unresolved, module_conflict
 */
export function resolvePayload(
  documents: readonly ModuleDocument[],
  desired: DesiredModules,
  agent: AgentFacts,
  lookups = noLookups,
): Payload {
  const { layers } = desired;
  const resolved = resolveDesiredSet({ modules: documents, layers, lookups: lookups.values, agent });
  if (!resolved.ok) throw new MusterError(resolved.code, resolved.faults[0]?.message, resolved.faults);
  const { resources, verify } = resolved;
  // A lookup that this agent does not use does not make its plans stale.
  const used = new Set(resolved.lookups ?? []);
  const digests = Object.entries(lookups.digests).filter(([name]) => used.has(name));
  return {
    resources,
    keep_modules: desired.keep,
    ...(verify.length === 0 ? {} : { verify }),
    ...(digests.length === 0 ? {} : { lookups: Object.fromEntries(digests) }),
  };
}

/** Maximum size as JSON: the link's message limit, minus space for secrets. */
const maxPayloadBytes = 48 * 1024 * 1024;

export interface EncodedPayload {
  /** SHA-256 of the text, in hexadecimal. */
  readonly digest: string;
  readonly text: JsonText<Payload>;
}

/**
 * Encodes a payload as text, and computes its digest.
 * @throws MusterError module_unresolved if the payload is too large to send
 */
export function encodePayload(payload: Payload): EncodedPayload {
  const text = toJson(payload);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxPayloadBytes) {
    const message = `the desired set is ${Math.ceil(bytes / 1024 / 1024)} MiB in size, which exceeds the maximum of ${maxPayloadBytes / 1024 / 1024} MiB; remove large content from modules`;
    throw new MusterError('module_unresolved', message, [{ path: '/modules', message }]);
  }
  return { digest: hash('sha256', text, 'hex'), text };
}
