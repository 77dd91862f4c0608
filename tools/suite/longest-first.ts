import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Slow test files in `npm test`, identified by the last part of their paths, slowest first in each tier. A file that
 * takes a minute and starts last would run alone at the end.
 */
const longest = [
  'bench/src/fuzz/fuzz.test.ts',
  'protocol/src/module/hostile.test.ts',
  'orchestrator/src/gateway/gateway.test.ts',
  'cli/src/main.test.ts',
  'agent/src/terminal/terminals.test.ts',
  'agent/src/facts/machine-facts.test.ts',
  'cli/src/verbs/terminals/terminals.test.ts',
  'orchestrator/src/store/samples/sample-file.test.ts',
  'cli/src/keys/key.test.ts',
  'agent/src/host/host.test.ts',
  'agent/src/watch/drift-watch.test.ts',
  'orchestrator/src/store/transfer/transfer.contract.test.ts',
  'agent/src/converge/verify.contract.test.ts',
  'orchestrator/src/domain/audit/audit.contract.test.ts',
  'orchestrator/src/domain/secrets/secrets.contract.test.ts',
  'orchestrator/src/offline/backup.contract.test.ts',
  'orchestrator/src/http/real-domain.contract.test.ts',
  'orchestrator/src/schedule/outbox.contract.test.ts',
  'orchestrator/src/http/events.contract.test.ts',
  'agent/src/converge/agreement.contract.test.ts',
  'orchestrator/src/domain/intake.contract.test.ts',
  'orchestrator/src/domain/runs/runs.contract.test.ts',
  'orchestrator/src/store/database.contract.test.ts',
  'orchestrator/src/store/postgres/postgres.contract.test.ts',
  'orchestrator/src/store/samples/samples.contract.test.ts',
  'orchestrator/src/domain/terminals/terminals.contract.test.ts',
  'orchestrator/src/domain/hostile.contract.test.ts',
  'orchestrator/src/domain/operations/operations.contract.test.ts',
  'orchestrator/src/domain/fleet/metrics.contract.test.ts',
  'agent/src/converge/crash.contract.test.ts',
  'orchestrator/src/http/ended-sessions.contract.test.ts',
  'orchestrator/src/http/refusals.contract.test.ts',
  'orchestrator/src/domain/drift/reconcile.contract.test.ts',
  'orchestrator/src/http/removal.contract.test.ts',
  'orchestrator/src/domain/operations/applied-state.contract.test.ts',
  'orchestrator/src/domain/drift/drift-sweep.contract.test.ts',
  'orchestrator/src/domain/operators/sign-in.contract.test.ts',
  'agent/src/resources/provider/provider.contract.test.ts',
  'e2e/providers-1.test.ts',
  'e2e/providers-2.test.ts',
  'e2e/npm-start.test.ts',
  'e2e/package-apt.test.ts',
  'e2e/package-dnf.test.ts',
  'e2e/benches/smoke-1.test.ts',
  'e2e/benches/smoke-3.test.ts',
  'e2e/browser/pages.test.ts',
  'e2e/benches/smoke-2.test.ts',
  'e2e/small-heap.test.ts',
  'e2e/hosts/recipes.test.ts',
  'e2e/hosts/sites.test.ts',
  'e2e/kill.test.ts',
  'e2e/browser/flows.test.ts',
  'e2e/hosts/installation.test.ts',
  'e2e/benches/ended.test.ts',
  'e2e/busy-agent.test.ts',
  'e2e/hosts/getting-started.test.ts',
  'e2e/browser/session.test.ts',
  'e2e/terminal.test.ts',
  'e2e/package-safety.test.ts',
  'e2e/key-rotation.test.ts',
  'e2e/metrics.test.ts',
  'e2e/secrets.test.ts',
  'e2e/late.test.ts',
  'e2e/service-triggers.test.ts',
  'e2e/discovery.test.ts',
  'e2e/backup.test.ts',
  'e2e/hosts/executable.test.ts',
  'e2e/transitions.test.ts',
  'e2e/move.test.ts',
  'e2e/postgres.test.ts',
  'e2e/busy-link.test.ts',
  'e2e/bound-and-interrupted.test.ts',
  'e2e/hostile-agent.test.ts',
  'e2e/fleet.test.ts',
  'e2e/hosts/test-hosts.test.ts',
  'e2e/restarts-in-a-row.test.ts',
  'e2e/hostile-network.test.ts',
  'e2e/hostile-hosts.test.ts',
  'e2e/agent-program.test.ts',
  'e2e/nouns.test.ts',
  'e2e/output.test.ts',
  'e2e/refusals.test.ts',
  'e2e/relay.test.ts',
  'e2e/accounts.test.ts',
];

const rank = ({ moduleId }: TestSpecification): number => {
  const at = longest.findIndex((end) => moduleId.endsWith(end));
  return at === -1 ? longest.length : at;
};

/** Starts the listed slow files first, followed by the others in Vitest's order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
