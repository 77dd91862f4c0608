/** Other configuration tools, as Debian packages them: the package, the program, and its command line. */
export interface Peer {
  name: string;
  /** Debian packages; the first one is the peer itself. */
  packages: readonly string[];
  program: string;
  /** @param policy path of a file in `bench/peers`, without its ending */
  command(policy: string): readonly string[];
  /** Whether a run succeeded; the second run (`again`) changes nothing. */
  succeeded(run: { code: number | null; stdout: string }, again: boolean): boolean;
}

export const peers: readonly Peer[] = [
  {
    name: 'CFEngine',
    packages: ['cfengine3', 'python3'],
    program: '/usr/bin/cf-agent',
    // Without -K, cf-agent does nothing for a minute after each run.
    command: (policy) => ['/usr/bin/cf-agent', '-K', '-f', `${policy}.cf`],
    succeeded: ({ code, stdout }) => code === 0 && !/error:/.test(stdout),
  },
  {
    name: 'Puppet',
    packages: ['puppet-agent'],
    program: '/usr/bin/puppet',
    command: (policy) => ['/usr/bin/puppet', 'apply', '--detailed-exitcodes', `${policy}.pp`],
    // 0: no change was necessary; 2: it changed something, and nothing failed.
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
