#!/usr/bin/env bash
# Runs `make run` and `make test` from a clean clone in a minimal Debian that holds no other package.
# See `tools/bare_check.sh --help`.
set -euo pipefail

PACKAGES=python3-venv,make,gcc,libc6-dev
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    cat <<'END'
tools/bare_check.sh [--only run|test] [--keep DIR] [--suite NAME] [--with PACKAGE,...] [--root] [--dir DIR]
                    [-- WORD...]

Makes a minimal Debian with python3-venv, make, gcc and libc6-dev, clones the last commit into it and runs
`make run` and `make test` there as an ordinary user. Needs root, debootstrap and git. Exit code 0: both pass.

  --only run|test     one of the two commands
  --keep DIR          keep the base system (before the clone) in DIR, or take it from there: saves a minute
  --suite NAME        Debian release; that of this machine by default
  --with PACKAGE,...  Debian packages to add, e.g. git or chromium, to see what one more package changes
  --root              run as root inside, as in a container
  --dir DIR           work in DIR, which must not exist yet, and leave it in place; a temporary folder by default
  -- WORD...          more words for make, e.g. TESTS=tests/sim/test_render.py

The mirror comes from apt's sources, the index from pip's settings (files and PIP_*), proxies and certificates from the
environment. Local folders that pip reads are mounted read-only at the same paths. Only committed files are tested.
END
}

die() {
    echo "bare_check: $1" >&2
    exit 1
}

# The mirror that this machine's apt uses for a suite.
mirror_of() {
    # shellcheck disable=SC2016  # apt expands $(REPO_URI)
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Release: $1" 'Component: main' | sed -n 1p
}

# The base system as DIR/base-NAME.tar, made if it is not there.
make_base() {
    local archive=$1 system=$2 suite=$3 packages=$4 mirror proxy
    [ -e "$archive" ] && return
    mirror=$(mirror_of "$suite")
    [ -n "$mirror" ] || die "apt knows no mirror of '$suite': name a release from apt's sources with --suite"
    proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy | sed -n 1p)
    echo "== base system: $suite with ${packages//,/, }"
    http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase --include="$packages" "$suite" "$system" "$mirror" \
        >"$archive.log" 2>&1 || {
        tail -n 5 "$archive.log" >&2
        die "debootstrap failed, see the lines above"
    }
    rm -f "$system"/var/cache/apt/archives/*.deb
    tar -C "$system" --numeric-owner -cf "$archive.part" .
    mv "$archive.part" "$archive"
    rm -f "$archive.log"
}

# pip's settings as one file, in pip's own order: global, user, site, then the file that PIP_CONFIG_FILE names.
pip_settings() {
    python3 - <<'END'
import configparser, re, subprocess, sys
run = subprocess.run([sys.executable, "-m", "pip", "config", "debug"], capture_output=True, text=True)
files, kind = {}, ""
for line in run.stdout.splitlines():
    if found := re.fullmatch(r"(\w+):", line):
        kind = found[1]
    elif found := re.fullmatch(r"  (.+), exists: True", line):
        files.setdefault(kind, []).append(found[1])
merged = configparser.RawConfigParser()
for kind in ("global", "user", "site", "env"):
    merged.read(files.get(kind, []), encoding="utf-8")
merged.write(sys.stdout)
END
}

# Folders on this machine that pip's settings (a file, and PIP_*) name, one a line.
pip_folders() {
    python3 - "$1" <<'END'
import configparser, os, pathlib, sys, urllib.parse, urllib.request
merged = configparser.RawConfigParser()
merged.read(sys.argv[1], encoding="utf-8")
names = ("index-url", "extra-index-url", "find-links")
words = [w for s in merged.sections() for n in names for w in merged.get(s, n, fallback="").split()]
words += [w for n in names for w in os.environ.get("PIP_" + n.upper().replace("-", "_"), "").split()]
folders = set()
for word in words:
    path = urllib.request.url2pathname(urllib.parse.urlparse(word).path) if word.startswith("file:") else word
    if path.startswith("/") and os.path.isdir(path):
        folder = pathlib.Path(path).resolve()
        # The pages of an index point to files beside it.
        folders.add(folder.parent if folder.name == "simple" else folder)
print("\n".join(str(folder) for folder in sorted(folders)))
END
}

# Settings of this machine that the network needs: copied into the system, and as NAME=VALUE lines.
copy_settings() {
    local system=$1 name file
    cp -L /etc/resolv.conf /etc/hosts "$system/etc/"
    pip_settings >"$system/etc/pip.conf"
    for name in $(compgen -e); do
        case $name in
            PIP_CONFIG_FILE | PIP_CACHE_DIR | PIP_REQUIRE_VIRTUALENV | PIP_USER | PIP_TARGET | PIP_PREFIX) ;;
            PIP_* | SSL_CERT_FILE | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | *_proxy | *_PROXY) echo "$name=${!name}" ;;
        esac
    done
    for file in "${SSL_CERT_FILE:-}" "${REQUESTS_CA_BUNDLE:-}" "${CURL_CA_BUNDLE:-}" "${PIP_CERT:-}" \
        "$(sed -n 's/^cert *= *//p' "$system/etc/pip.conf")"; do
        [ -f "$file" ] && install -D -m 644 "$file" "$system$file"
    done
    return 0
}

# Runs in mount and process namespaces of its own: when it ends, so do its mounts and its processes.
inside() {
    local system=$1 settings=$2 user=$3 folder
    shift 3
    mount --make-rprivate /
    mount -t proc proc "$system/proc"
    mount -t tmpfs tmpfs "$system/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$system/dev/pts"
    ln -sf pts/ptmx "$system/dev/ptmx"
    while read -r folder; do
        [ -n "$folder" ] || continue
        mkdir -p "$system$folder"
        mount --bind "$folder" "$system$folder"
        mount -o remount,bind,ro "$system$folder"
    done < <(pip_folders "$system/etc/pip.conf")
    local -a variables
    mapfile -t variables <"$settings"
    # shellcheck disable=SC2016  # expanded by the shell inside
    exec chroot --userspec="$user:$user" "$system" /usr/bin/env -i HOME=/home/gait PATH=/usr/local/bin:/usr/bin:/bin \
        "${variables[@]}" /bin/sh -c 'cd /home/gait/gait && exec "$@"' sh "$@"
}

main() {
    local only="" keep="" suite="" more="" work="" temporary="" user=1000
    while [ $# -gt 0 ]; do
        case $1 in
            --help | -h) usage && exit 0 ;;
            --only | --keep | --suite | --with | --dir)
                [ $# -gt 1 ] || die "$1 needs a value, see --help"
                case $1 in
                    --only) only=$2 ;;
                    --keep) keep=$2 ;;
                    --suite) suite=$2 ;;
                    --with) more=$2 ;;
                    --dir) work=$2 ;;
                esac
                shift 2
                ;;
            --root) user=0 && shift ;;
            --) shift && break ;;
            *) die "unknown option '$1', see --help" ;;
        esac
    done
    case $only in "" | run | test) ;; *) die "--only takes run or test, not '$only'" ;; esac
    [ "$(id -u)" = 0 ] || die "needs root, to mount and to chroot: run it with sudo"
    local tool
    for tool in debootstrap git unshare python3; do
        command -v "$tool" >/dev/null || die "$tool is not installed: run \`apt-get install $tool\`"
    done
    # shellcheck disable=SC1091
    suite=${suite:-$(. /etc/os-release && echo "${VERSION_CODENAME:-}")}

    if [ -n "$work" ]; then
        [ ! -e "$work" ] || die "$work exists: name a folder that does not"
        mkdir -p "$work"
    else
        work=$(mktemp -d) temporary=$work
        # The path is that of now. Mounts live in a namespace of their own, so nothing else is below it.
        # shellcheck disable=SC2064
        trap "rm -rf --one-file-system '$temporary'" EXIT
        trap 'exit 130' INT TERM HUP
    fi
    keep=${keep:-$work}
    mkdir -p "$keep"

    local packages=$PACKAGES${more:+,$more} system=$work/system
    local archive=$keep/base-$suite-${packages//,/+}.tar
    make_base "$archive" "$work/base" "$suite" "$packages"
    rm -rf "$work/base"
    mkdir "$system"
    tar -C "$system" --numeric-owner -xf "$archive"
    copy_settings "$system" >"$work/settings"

    [ -z "$(git -C "$ROOT" status --porcelain)" ] || echo "== note: changes that are not committed are not tested"
    mkdir -p "$system/home/gait"
    git clone --quiet --no-local "$ROOT" "$system/home/gait/gait"
    if [ "$user" != 0 ]; then
        echo "gait:x:$user:$user::/home/gait:/bin/sh" >>"$system/etc/passwd"
        echo "gait:x:$user:" >>"$system/etc/group"
    fi
    chown -R "$user:$user" "$system/home/gait"
    echo "== commit $(git -C "$ROOT" rev-parse --short HEAD) on $suite, $(nproc) cores"

    local goal start failed=0 verdict=""
    for goal in run test; do
        [ -z "$only" ] || [ "$only" = "$goal" ] || continue
        echo "== make $goal"
        start=$SECONDS
        if unshare --mount --pid --fork --kill-child "${BASH_SOURCE[0]}" --inside "$system" "$work/settings" \
            "$user" make "$goal" "$@"; then
            verdict+="make $goal passed in $((SECONDS - start)) s"$'\n'
        else
            verdict+="make $goal FAILED (exit code $?) after $((SECONDS - start)) s"$'\n'
            failed=1
        fi
    done
    printf '== verdict\n%s' "$verdict"
    return $failed
}

if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
else
    main "$@"
    exit
fi
