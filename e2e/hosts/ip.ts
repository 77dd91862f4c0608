import { execFileSync } from 'node:child_process';

export const ip = (...args: string[]): string =>
  execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

interface Link {
  ifname: string;
  ifalias?: string;
  linkinfo?: { info_kind?: string };
}

export const links = (): Link[] => JSON.parse(ip('-json', '-details', 'link', 'show')) as Link[];
