import type { OnlyIf } from './document.ts';
import type { ResourceBodies, ResourceType } from './kinds.ts';

/**
 * A resource as one agent gets it: variant chosen, template inlined into `content`, expressions replaced. What is left
 * to do on the machine is to observe, compare and act.
 */
export interface ResolvedResource<T extends ResourceType = ResourceType> {
  /** Identity space and value, e.g. `path:/etc/motd`, `service-systemd:nginx`. Unique in a desired set. */
  key: string;
  module: string;
  /** Null when the module gave none. */
  id: string | null;
  /** The label for people. */
  name: string | null;
  type: T;
  /** The bare identity value: a path, a package, a user. */
  identity: string;
  body: ResourceBodies[T];
  /** Keys that must have succeeded (or need nothing) before; explicit ones and those implied by triggers. */
  depends_on: string[];
  reload_on: string[];
  restart_on: string[];
  rerun_on: string[];
  /** Without it: no condition. Agents know it since protocol version 6. */
  only_if?: OnlyIf;
  /** Names of body fields that hold a secret: redacted as a whole everywhere but on the machine itself. */
  sensitive_fields: string[];
}
