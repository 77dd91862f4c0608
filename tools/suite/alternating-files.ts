import { hash } from 'node:crypto';

/**
 * Groups of slow test files with the same purpose. `npm test` runs one file of each group; `npm run soak -- kill-steps` runs
 * all.
 */
export const groups: readonly (readonly string[])[] = [
  [
    ...['e2e/browser/apply.test.ts', 'e2e/browser/drafts.test.ts', 'e2e/browser/editor.test.ts'],
    'e2e/browser/lazy-pages.test.ts',
  ],
  ['e2e/browser/console-sessions.test.ts', 'e2e/browser/session.test.ts'],
  ['e2e/browser/accessible.test.ts', 'e2e/browser/pictures.test.ts'],
  ['e2e/hosts/recipes.test.ts', 'e2e/hosts/sites.test.ts'],
  ['e2e/hosts/documentation.test.ts', 'e2e/hosts/idioms.test.ts', 'e2e/hosts/roles.test.ts'],
  ['e2e/hosts/executable.test.ts', 'e2e/hosts/getting-started.test.ts', 'e2e/hosts/installation.test.ts'],
  [
    ...['e2e/compose.test.ts', 'e2e/compose-docker.test.ts', 'e2e/compose-podman.test.ts'],
    ...['e2e/containers.test.ts', 'e2e/containers-docker.test.ts', 'e2e/containers-podman.test.ts'],
  ],
  [
    ...['e2e/databases.test.ts', 'e2e/language-packages.test.ts', 'e2e/locale.test.ts'],
    ...['e2e/package-dnf.test.ts', 'e2e/package-pacman.test.ts', 'e2e/package-zypper.test.ts'],
  ],
  ['e2e/firewalls.test.ts', 'e2e/hosts/firewall.test.ts', 'e2e/selinux.test.ts'],
  ['e2e/acl.test.ts', 'e2e/attributes.test.ts', 'e2e/capabilities.test.ts'],
  // Each pair has the subjects of half of the kinds.
  ['e2e/providers-1.test.ts', 'e2e/providers-2.test.ts'],
  ['e2e/providers-3.test.ts', 'e2e/providers-4.test.ts'],
  ['e2e/interrupted-packages.test.ts', 'e2e/package-apt.test.ts', 'e2e/package-safety.test.ts'],
  ['e2e/bound-and-interrupted.test.ts', 'e2e/kill.test.ts', 'e2e/restarts-in-a-row.test.ts', 'e2e/run-kill.test.ts'],
  ['e2e/busy-agent.test.ts', 'e2e/busy-link.test.ts', 'e2e/small-heap.test.ts'],
  ['e2e/hostile-agent.test.ts', 'e2e/hostile-hosts.test.ts', 'e2e/hostile-network.test.ts'],
  ['e2e/backup.test.ts', 'e2e/key-rotation.test.ts', 'e2e/move.test.ts'],
  ['e2e/replicas.test.ts', 'e2e/replicas-nats.test.ts'],
  ['e2e/hosts/replicas.test.ts', 'e2e/replicas-balancer.test.ts', 'e2e/replicas-upgrade.test.ts'],
  [
    ...['e2e/benches/ended.test.ts', 'e2e/benches/smoke-1.test.ts', 'e2e/benches/smoke-2.test.ts'],
    'e2e/benches/smoke-3.test.ts',
  ],
  ['e2e/hosts/terminals.test.ts', 'e2e/terminal-cli.test.ts', 'e2e/terminal-tmux.test.ts'],
];

/**
 * Returns the files that a run omits: all files of each group except one, which depends on the seed of the run.
 * @param env `npm test` sets MUSTER_SAMPLE_SEED, and `npm run soak` MUSTER_EVERY_STEP; other runs omit no file
 */
export function omittedFiles(env: NodeJS.ProcessEnv): string[] {
  const { MUSTER_SAMPLE_SEED: seed, MUSTER_EVERY_STEP: everyStep } = env;
  if (seed === undefined || everyStep !== undefined) return [];
  return groups.flatMap((files) => {
    const kept = hash('sha256', `${seed} ${files[0]}`, 'buffer').readUInt32BE() % files.length;
    return files.filter((_, at) => at !== kept);
  });
}
