import type { OnlyIf } from './document.ts';
import type { ResourceBodies, ResourceType } from './kinds.ts';

/** The content of a file next to a module. */
export interface SourceContent {
  /** In lower-case hexadecimal. */
  sha256: string;
  /** Bytes. */
  size: number;
}

/**
 * A resource as resolved for one agent: with the chosen variant, with the template in `content`, and with evaluated
 * expressions.
 */
export interface ResolvedResource<T extends ResourceType = ResourceType> {
  /** Identity space and value, such as `path:/etc/motd` or `service-systemd:nginx`. Unique in a desired state. */
  key: string;
  module: string;
  /** Null if the module defines no id. */
  id: string | null;
  /** Label for operators. */
  name: string | null;
  type: T;
  /** The identity, such as a path, a package, or a user. */
  identity: string;
  body: ResourceBodies[T];
  /**
   * Keys of resources that must have succeeded or needed no change before this resource. Includes the resources in
   * triggers.
   */
  depends_on: string[];
  reload_on: string[];
  restart_on: string[];
  rerun_on: string[];
  /**
   * Keys in `reload_on` and `restart_on` that the service reacts to before any later resource is applied. Absent if
   * there are none. Supported by agents since protocol version 7.
   */
  immediate_on?: string[];
  /**
   * The content that `source` in the body references. The agent fetches the content if it does not have it. Supported
   * by agents since protocol version 7.
   */
  source?: SourceContent;
  /**
   * Absent if there is no condition. Agents support `exists` since protocol version 6, and all forms since version 7.
   */
  only_if?: OnlyIf;
  /** Names of body fields that may contain a secret. Their values are shown only on the machine itself. */
  sensitive_fields: string[];
}
