import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../tools/suite/cli.ts';

/** Debian's Chromium, because it needs no separate download and is updated with the system. */
export const browserProgram = '/usr/bin/chromium';

/** The program in Debian's bash-completion package that loads Bash completion scripts on demand. */
export const bashCompletion = '/usr/share/bash-completion/bash_completion';

/**
 * Test requirements in addition to Node.js and this repository. Each function returns true, or the reason why the
 * requirement is not met.
 */
const needs = {
  linux: () => process.platform === 'linux' || 'needs Linux',
  root: () => process.getuid?.() === 0 || 'needs root',
  namespaces: () =>
    (works('ip', ['netns', 'add', probe]) && works('ip', ['netns', 'delete', probe])) ||
    'needs iproute2 and permission to create network namespaces',
  hosts: () =>
    ['debootstrap', 'systemd-nspawn', 'nsenter', 'setpriv', 'flock'].every((tool) => works('which', [tool])) ||
    'needs debootstrap, systemd-nspawn, and util-linux',
  tmux: () => ['tmux', 'vi', 'top'].every((tool) => works('which', [tool])) || 'needs tmux, vim-tiny, and procps',
  zsh: () => works('which', ['zsh']) || 'needs zsh',
  fish: () => works('which', ['fish']) || 'needs fish',
  'bash-completion': () => existsSync(bashCompletion) || 'needs bash-completion',
  haproxy: () => works('which', ['haproxy']) || 'needs haproxy',
  git: () =>
    (existsSync(join(root, '.git')) && works('git', ['--version'])) || 'needs git and a clone of the repository',
  browser: () =>
    existsSync(browserProgram) || `needs Debian's packages chromium and fonts-dejavu-core (no ${browserProgram})`,
  registry: () =>
    works('npm', ['view', 'zod@4', 'version', '--fetch-retries=0', '--fetch-timeout=5000']) ||
    'needs access to an npm registry',
} satisfies Record<string, () => true | string>;

export type Requirement = keyof typeof needs;

const probe = `muster-probe-${process.pid}`;

const works = (command: string, args: string[]): boolean =>
  spawnSync(command, args, { cwd: root, stdio: 'ignore', timeout: 120_000 }).status === 0;

/** Returns the reason why a requirement is not met, for `context.skip(reason)`; null if all of them are met. */
export function missing(...requirements: Requirement[]): string | null {
  for (const requirement of requirements) {
    const found = needs[requirement]();
    if (found !== true) return found;
  }
  return null;
}
