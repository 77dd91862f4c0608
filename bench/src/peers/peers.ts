import type { convergePeers } from '../run/bars.ts';

/** A configuration tool to compare Muster with, as packaged by Debian. */
export interface Peer {
  name: (typeof convergePeers)[number];
  /** Names of Debian packages; the first one is the peer itself. */
  packages: readonly string[];
  /** The program's path. */
  program: string;
  /** Returns the command line. @param policy path of a file in `bench/peers`, without its extension */
  command(policy: string): readonly string[];
  /**
   * Reports whether a run succeeded.
   * @param again whether this was the second run, which must change nothing
   */
  succeeded(run: { code: number | null; stdout: string }, again: boolean): boolean;
}

export const peers: readonly Peer[] = [
  {
    name: 'CFEngine',
    packages: ['cfengine3', 'python3'],
    program: '/usr/bin/cf-agent',
    // Passes -K, because cf-agent otherwise skips promises verified within the last minute.
    command: (policy) => ['/usr/bin/cf-agent', '-K', '-f', `${policy}.cf`],
    succeeded: ({ code, stdout }) => code === 0 && !/error:/.test(stdout),
  },
  {
    name: 'Puppet',
    packages: ['puppet-agent'],
    program: '/usr/bin/puppet',
    command: (policy) => ['/usr/bin/puppet', 'apply', '--detailed-exitcodes', `${policy}.pp`],
    // Exit code 0 means no changes, 2 means successful changes.
    succeeded: ({ code }, again) => code === 0 || (code === 2 && !again),
  },
  {
    name: 'Ansible',
    packages: ['ansible-core', 'python3-apt'],
    program: '/usr/bin/ansible-playbook',
    command: (policy) => ['/usr/bin/ansible-playbook', '-i', 'localhost,', '-c', 'local', `${policy}.yml`],
    succeeded: ({ code, stdout }, again) => code === 0 && (!again || /\bchanged=0\b/.test(stdout)),
  },
];
