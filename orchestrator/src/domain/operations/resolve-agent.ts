import type { Agent } from '@muster/protocol/http';
import type { ModuleDocument } from '@muster/protocol/module';
import { getAgent } from '../agents/agents.ts';
import { listAssignments } from '../modules/assignments.ts';
import {
  type DesiredModules,
  dependsOnWindow,
  desiredModules,
  type EncodedPayload,
  encodePayload,
  type Payload,
  resolvePayload,
} from '../modules/desired-set.ts';
import { createLookups, type LookUp, recentLookups } from '../modules/lookups.ts';
import { coveredUntil, openWindows } from '../modules/windows.ts';
import { createSecretAccess } from '../secrets/secret-access.ts';
import type { Context } from '../shared/context.ts';
import { revisionsOf } from '../shared/module-documents.ts';
import {
  modulesOfPlan,
  requireEqualDesiredSet,
  type requirePlan,
  type SecretVersions,
  staleIfUnresolved,
} from './plan-binding.ts';

export interface AgentSet {
  desired: DesiredModules;
  payload: EncodedPayload;
  resolved: Payload;
  secrets: SecretVersions;
  /** Revision of each desired module, without the draft. */
  revisions: Record<string, number>;
  /**
   * When the maintenance window on which the desired state depends closes, in Unix seconds. The desired state must not
   * be applied afterward. Null if it depends on no window.
   */
  until: number | null;
}

/**
 * Determines the modules that an agent should have now.
 * @param modules requested modules, in addition to those of assignments
 * @param draft a module that replaces the stored module with its name
 * @throws MusterError module_not_found
 */
export async function currentModules(
  context: Context,
  agent: Agent,
  modules: readonly string[],
  draft?: ModuleDocument,
) {
  const windowEnd = coveredUntil(await openWindows(context), agent);
  const assignments = await listAssignments(context);
  const ofDraft = draft?.requires.map(({ module }) => module) ?? [];
  const newest = await context.documents.newest([
    ...assignments.flatMap((assignment) => assignment.modules),
    ...modules.filter((name) => name !== draft?.name),
    ...ofDraft,
  ]);
  const { revisions } = newest;
  const requires =
    draft === undefined
      ? newest.requires
      : new Map<string, readonly string[]>([...newest.requires, [draft.name, ofDraft]]);
  const desired = desiredModules(assignments, agent, { modules, requires, windowOpen: windowEnd !== null });
  const stored = await context.documents.load(
    desired.modules.filter((name) => name !== draft?.name),
    revisions,
  );
  const documents = draft === undefined ? stored : stored.toSpliced(desired.modules.indexOf(draft.name), 0, draft);
  return {
    desired,
    documents,
    revisions: revisionsOf(desired.modules, revisions),
    until: dependsOnWindow(assignments, agent) ? windowEnd : null,
  };
}

/**
 * Determines an agent's current desired state.
 * @param modules requested modules, in addition to those of assignments
 * @param draft a module that replaces the stored module with its name; `modules` must include its name
 * @throws MusterError module_not_found, module_unresolved, module_conflict
 */
export async function currentDesiredSet(
  context: Context,
  agent: Agent,
  modules: readonly string[],
  { lookUp = createLookups(context), draft }: { lookUp?: LookUp; draft?: ModuleDocument | undefined } = {},
): Promise<AgentSet> {
  const { desired, documents, revisions, until } = await currentModules(context, agent, modules, draft);
  const lookups = await lookUp(documents);
  const resolved = resolvePayload(documents, desired, agent, lookups);
  const secrets = await createSecretAccess(context).allow(resolved, agent);
  return { desired, payload: encodePayload(resolved), resolved, secrets, revisions, until };
}

/**
 * How long dispatch reuses the values of a lookup, in milliseconds. A run dispatches to many agents at the same time.
 */
const maxLookupAgeMs = 1000;

type Plan = Awaited<ReturnType<typeof requirePlan>>;

/**
 * Checks that a plan still matches its agent's desired state.
 * @throws StalePlan
 */
export async function requirePlanStillValid(context: Context, plan: Plan): Promise<void> {
  const { payload, resolved, secrets } = await staleIfUnresolved(plan, async () => {
    const agent = await getAgent(context, plan.node_id);
    const lookUp = recentLookups(context, context.db, maxLookupAgeMs);
    return currentDesiredSet(context, agent, modulesOfPlan(plan, []), { lookUp });
  });
  await requireEqualDesiredSet(context, plan, { digest: payload.digest, secrets, lookups: resolved.lookups });
}
