/** The packages that a removal would remove, as a dry run of the package manager reports them. */

export interface Removed {
  name: string;
  /** The package in the notation in which the package manager removes exactly this one. */
  spec: string;
}

/**
 * Packages that a transaction would remove: the requested ones, their dependents, and dependencies that become unused.
 */
export interface Removal {
  requested: Removed[];
  dependent: Removed[];
  unused: Removed[];
}
