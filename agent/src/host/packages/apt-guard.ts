/**
 * Limits which packages apt removes. apt runs a hook after it has taken its lock and made its decision, so that the
 * decision can no longer change. apt passes each package to the hook (protocol 3: `name version architecture …`, with
 * the action last), and aborts before any change if the hook fails.
 */

/** The only packages that a transaction may remove. */
export interface AllowedRemoval {
  /** Package names in apt's notation: `name`, or `name:architecture` for foreign architectures. */
  names: readonly string[];
  /** The native architecture of the machine. */
  native: string;
  /**
   * Whether to allow removal of installed packages, or only of configuration files that removed packages left behind.
   */
  what: 'installed' | 'leftovers';
}

/** Unique first word, because apt identifies a hook by its first word. */
const hookName = 'muster_may_go()';

// Input without a package line means an error, such as an apt version that does not support protocol 3. The hook then
// refuses everything.
const hook = `${hookName} {
  sed -n '1,/^$/d; s/ \\*\\*REMOVE\\*\\*$//p' | {
    some=no
    wrong=
    while read -r name version architecture rest; do
      some=yes
      case $architecture in
        all | "$MUSTER_NATIVE") full=$name ;;
        *) full=$name:$architecture ;;
      esac
      case " $MUSTER_MAY_GO " in
        *" $full "* | *" $name:$architecture "*) ;;
        *) wrong="$wrong $full"; continue ;;
      esac
      test "$MUSTER_LEFTOVERS" = no ||
        test "$(dpkg-query -W -f '\${db:Status-Status}' "$full")" = config-files || wrong="$wrong $full"
    done
    if test $some = yes && test -z "$wrong"; then exit 0; fi
    echo "muster: not to be removed:$wrong"
    exit 1
  }
}
muster_may_go`;

/** Options of apt-get that install the hook. */
export const guardOptions: readonly string[] = [
  ...['-o', `DPkg::Tools::Options::${hookName}::Version=3`],
  ...['-o', `DPkg::Pre-Install-Pkgs::=${hook}`],
];

/** Passes names to the hook as variables, so that no name becomes part of a shell script. */
export const guardEnvironment = ({ names, native, what }: AllowedRemoval): Record<string, string> => ({
  MUSTER_MAY_GO: names.join(' '),
  MUSTER_NATIVE: native,
  MUSTER_LEFTOVERS: what === 'leftovers' ? 'yes' : 'no',
});

/**
 * @param output of apt-get
 * @returns the packages that the hook refused to remove; null if it refused none
 */
export function refusedByGuard(output: string): string[] | null {
  const refused = /^muster: not to be removed:(.*)$/m.exec(output)?.[1];
  return refused === undefined ? null : refused.split(' ').filter((name) => name !== '');
}
