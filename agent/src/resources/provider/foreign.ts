import { isResourceType, kinds, type ResourceType } from '@muster/protocol/module';

/**
 * Platforms of the kinds that this agent does not support. Such resources are parsed, resolved, and sent like all
 * others; the agent refuses them with the reason.
 */

const platforms: Readonly<Partial<Record<ResourceType, string>>> = {
  'package-brew': 'macOS',
  'service-launchd': 'macOS',
  'package-choco': 'Windows',
  'package-winget': 'Windows',
  'file-windows': 'Windows',
  'directory-windows': 'Windows',
  'user-windows': 'Windows',
  'group-windows': 'Windows',
  'service-windows': 'Windows',
};
const shells: Readonly<Record<string, string>> = { powershell: 'Windows', cmd: 'Windows', pwsh: 'PowerShell' };

const here = (): string => (process.platform === 'linux' ? 'Linux' : process.platform);

/** Returns the reason why this agent cannot apply resources of a type. */
export function whyNotApplicable(type: ResourceType): string {
  const platform = platforms[type];
  if (platform !== undefined)
    return `this agent cannot apply ${type}: it is for ${platform}, and this machine runs ${here()}. Give it a \`when\`, or a variant for each platform; the other resources are not affected`;
  if (isResourceType(type) && !kinds[type].isSupported)
    return `no release of the agent supports ${type} yet. Use a \`script\`; the other resources are not affected`;
  return `this agent cannot apply ${type} yet; the other resources are not affected`;
}

/** Returns the reason why this agent cannot run scripts for a shell. */
export function whyNotRun(program: string): string {
  const platform = shells[program];
  if (platform === undefined) return `this agent cannot run ${program} scripts, only sh and bash`;
  const whose = platform === 'Windows' ? 'are for Windows' : 'need PowerShell';
  return `${program} scripts ${whose}, and agents on ${here()} run only sh and bash: give the resource a variant for each platform`;
}
