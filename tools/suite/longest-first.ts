import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** A few files run at a time: one that takes a minute and begins last would run by itself. By their ends. */
const longest = [
  'bench/src/fuzz/fuzz.test.ts',
  'protocol/src/module/hostile.test.ts',
  'orchestrator/src/store/transfer/transfer.contract.test.ts',
  'orchestrator/src/domain/secrets/secrets.contract.test.ts',
  'orchestrator/src/domain/audit/audit.contract.test.ts',
  'orchestrator/src/domain/intake.contract.test.ts',
  'orchestrator/src/schedule/outbox.contract.test.ts',
  'orchestrator/src/http/real-domain.contract.test.ts',
  'orchestrator/src/domain/runs/runs.contract.test.ts',
  'orchestrator/src/offline/backup.contract.test.ts',
  'orchestrator/src/http/removal.contract.test.ts',
  'orchestrator/src/http/events.contract.test.ts',
  'agent/src/converge/agreement.contract.test.ts',
  'orchestrator/src/store/postgres/postgres.contract.test.ts',
  'e2e/providers.test.ts',
  'e2e/npm-start.test.ts',
  'e2e/package-apt.test.ts',
  'e2e/package-dnf.test.ts',
  'e2e/hosts/recipes.test.ts',
  'e2e/kill.test.ts',
  'e2e/browser/pages.test.ts',
  'e2e/browser/flows.test.ts',
  'e2e/hosts/getting-started.test.ts',
  'e2e/hosts/installation.test.ts',
  'e2e/benches/smoke-1.test.ts',
  'e2e/benches/smoke-2.test.ts',
  'e2e/benches/smoke-3.test.ts',
  'e2e/browser/session.test.ts',
  'e2e/key-rotation.test.ts',
  'e2e/terminal.test.ts',
  'e2e/hostile-hosts.test.ts',
  'e2e/benches/ended.test.ts',
  'e2e/secrets.test.ts',
  'e2e/agent-program.test.ts',
  'e2e/fleet.test.ts',
  'e2e/bound-and-interrupted.test.ts',
  'e2e/move.test.ts',
  'e2e/output.test.ts',
  'e2e/late.test.ts',
  'e2e/restarts-in-a-row.test.ts',
  'e2e/transitions.test.ts',
  'e2e/backup.test.ts',
  'e2e/metrics.test.ts',
  'e2e/service-triggers.test.ts',
  'e2e/package-safety.test.ts',
  'e2e/hosts/test-hosts.test.ts',
  'e2e/postgres.test.ts',
  'e2e/discovery.test.ts',
  'e2e/keys-agree.test.ts',
];

const rank = ({ moduleId }: TestSpecification): number => {
  const at = longest.findIndex((end) => moduleId.endsWith(end));
  return at === -1 ? longest.length : at;
};

/** The files that are known to take long begin first, the others in vitest's own order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
