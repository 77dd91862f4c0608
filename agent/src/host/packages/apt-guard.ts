/**
 * What apt may remove, checked by apt itself once it has the lock and has decided: only then can nobody change any more what
 * goes. It hands each package to the hook (protocol 3: `name version architecture …`, at the end what is done with it), and
 * gives up when the hook fails, before anything is changed.
 */

/** What a transaction may remove, and nothing else. */
export interface MayGo {
  /** As apt takes them: `name`, or `name:architecture` of a foreign one. */
  names: readonly string[];
  /** The machine's own architecture. */
  native: string;
  /** Installed ones may go, or only what is left of those that are not installed any more. */
  what: 'installed' | 'leftovers';
}

/** The first word is what apt knows a hook by: nobody else's has this one. */
const hookName = 'muster_may_go()';

// Without a single line to judge something is wrong, as with an apt that does not speak this protocol: nothing goes then.
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

/** Options of apt-get that let only those go. */
export const guardOptions: readonly string[] = [
  ...['-o', `DPkg::Tools::Options::${hookName}::Version=3`],
  ...['-o', `DPkg::Pre-Install-Pkgs::=${hook}`],
];

/** What the hook reads: no name gets into a text that a shell reads. */
export const guardEnvironment = ({ names, native, what }: MayGo): Record<string, string> => ({
  MUSTER_MAY_GO: names.join(' '),
  MUSTER_NATIVE: native,
  MUSTER_LEFTOVERS: what === 'leftovers' ? 'yes' : 'no',
});

/**
 * @param output of apt-get
 * @returns what it would have taken along; null when the hook had no objection
 */
export function refusedByGuard(output: string): string[] | null {
  const said = /^muster: not to be removed:(.*)$/m.exec(output)?.[1];
  return said === undefined ? null : said.split(' ').filter((name) => name !== '');
}
