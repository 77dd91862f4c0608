import type { OnlyIf } from './document.ts';
import type { ResourceBodies, ResourceType } from './kinds.ts';

/**
 * A resource as one agent receives it: variant chosen, template inlined into `content`, expressions evaluated. The
 * agent only observes, compares, and applies.
 */
export interface ResolvedResource<T extends ResourceType = ResourceType> {
  /** Identity space and value, e.g. `path:/etc/motd`, `service-systemd:nginx`. Unique in a desired set. */
  key: string;
  module: string;
  /** Null if the module defines no id. */
  id: string | null;
  /** The label shown to operators. */
  name: string | null;
  type: T;
  /** The bare identity value: a path, a package, a user. */
  identity: string;
  body: ResourceBodies[T];
  /**
   * Keys of resources that must have succeeded, or needed no change, before: explicit ones and those implied by
   * triggers.
   */
  depends_on: string[];
  reload_on: string[];
  restart_on: string[];
  rerun_on: string[];
  /** Absent: no condition. Agents support it since protocol version 6. */
  only_if?: OnlyIf;
  /** Names of body fields that contain a secret: redacted as a whole except on the machine itself. */
  sensitive_fields: string[];
}
