import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import type { WrittenFile } from '../file-unix/written-file.ts';
import { type Body, renderDropIn, renderSettings, renderUnit, unitFields } from './unit-file.ts';

/** The unit that a `service-systemd` or `unit-systemd` declares, and its files. */

/** The fields that both kinds share. */
export type UnitBody = Pick<ResourceBodies['unit-systemd'], 'enabled' | 'running' | 'ensure'>;

/** Types of resources that declare systemd units. */
export const unitTypes = ['service-systemd', 'unit-systemd'] as const;

export const bodyOf = (resource: ResolvedResource): UnitBody => resource.body as UnitBody;
/** Returns the body of a `service-systemd`; null for a `unit-systemd`. */
export const serviceOf = ({ type, body }: ResolvedResource): Body | null =>
  type === 'service-systemd' ? (body as Body) : null;
export const otherOf = ({ body }: ResolvedResource): ResourceBodies['unit-systemd'] =>
  body as ResourceBodies['unit-systemd'];

export const unitOf = (resource: ResolvedResource): string => {
  const service = serviceOf(resource);
  return service === null ? otherOf(resource).name : `${service.name}.service`;
};

const unitPath = (resource: ResolvedResource): string => `/etc/systemd/system/${unitOf(resource)}`;
export const dropInDirectory = (resource: ResolvedResource): string => `${unitPath(resource)}.d`;

/** Target of the unit file's link if the unit is masked. */
export const maskTarget = '/dev/null';

/** Reports whether the agent writes the unit itself instead of managing an existing one. */
export function isOwned(resource: ResolvedResource): boolean {
  if (bodyOf(resource).ensure === 'absent') return false;
  const service = serviceOf(resource);
  if (service !== null) return service.exec_start != null;
  const { masked, drop_in } = otherOf(resource);
  return masked === true || (drop_in !== true && textOfOther(resource) !== null);
}

/** Reports whether the agent must read the unit file in /etc. */
export const needsFile = (resource: ResolvedResource): boolean =>
  isOwned(resource) || bodyOf(resource).ensure === 'absent' || unmasks(resource);

/** Reports whether the resource declares that the unit is not masked. */
export const unmasks = (resource: ResolvedResource): boolean =>
  serviceOf(resource) === null && otherOf(resource).masked === false && !isOwned(resource);

/** Returns the declared text of a `unit-systemd`'s unit or drop-in. */
function textOfOther(resource: ResolvedResource): string | null {
  const { name, content, settings, drop_in } = otherOf(resource);
  if (content != null) return content.endsWith('\n') ? content : `${content}\n`;
  return settings == null ? null : renderSettings(settings, drop_in === true ? null : name);
}

const modeOf = ({ sensitive_fields }: ResolvedResource): WrittenFile['mode'] =>
  sensitive_fields.some((field) => [...unitFields, 'content', 'settings'].includes(field)) ? '0600' : '0644';

export function unitFile(resource: ResolvedResource): WrittenFile {
  const file = { path: unitPath(resource), mode: modeOf(resource) };
  if (!isOwned(resource)) return { ...file, text: null };
  const service = serviceOf(resource);
  if (service !== null) return { ...file, text: renderUnit(service) };
  return otherOf(resource).masked === true
    ? { ...file, text: null, symlink: maskTarget }
    : { ...file, text: textOfOther(resource) };
}

export function dropInFile(resource: ResolvedResource): WrittenFile {
  const file = { path: `${dropInDirectory(resource)}/50-muster.conf`, mode: modeOf(resource) };
  if (bodyOf(resource).ensure === 'absent') return { ...file, text: null };
  const service = serviceOf(resource);
  if (service !== null) return { ...file, text: service.exec_start == null ? renderDropIn(service) : null };
  return { ...file, text: otherOf(resource).drop_in === true ? textOfOther(resource) : null };
}
