/** Completion scripts. Each one runs `muster __complete -- WORDS…` to complete the last word. */

const bash = `# Completion of muster in bash. Put this into ~/.local/share/bash-completion/completions/muster, or into ~/.bashrc:
#   source <(muster completion bash)
_muster() {
  local current="\${COMP_WORDS[COMP_CWORD]}" line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2> /dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
      return
    fi
    line="\${line%%$'\\t'*}"
    # bash splits --flag=value, and completes only the value.
    [[ $current != --*=* && $line == --*=* ]] && line="\${line#*=}"
    COMPREPLY+=("$line")
  done < <(muster __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -F _muster muster
`;

const zsh = `#compdef muster
# Completion of muster in zsh. Put this into a file called _muster in a folder of $fpath, or into ~/.zshrc:
#   source <(muster completion zsh)
_muster() {
  local -a lines described
  local line
  lines=("\${(@f)$(muster __complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ $lines[1] == :files ]]; then
    _files
    return
  fi
  for line in $lines; do
    if [[ $line == *$'\\t'* ]]; then
      described+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    else
      described+=("\${line//:/\\\\:}")
    fi
  done
  (( \${#described} )) && _describe -V muster described
}
if [[ $funcstack[1] == _muster ]]; then _muster "$@"; else compdef _muster muster; fi
`;

const fish = `# Completion of muster in fish. Put this into ~/.config/fish/completions/muster.fish:
#   muster completion fish > ~/.config/fish/completions/muster.fish
function __muster_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l lines (muster __complete -- $typed[2..-1] "$current" 2> /dev/null)
    if test "$lines[1]" = ":files"
        __fish_complete_path "$current"
    else
        printf '%s\\n' $lines
    end
end
complete -c muster -f -a '(__muster_complete)'
`;

export const completionScripts = { bash, zsh, fish } as const;
