#!/bin/sh
# What a container of the image starts: `ranks` with the words that follow, or a program. SkyPilot and pods start
# programs, and `sshd` makes a pod that ssh and `ranks push` reach, with the key of its owner in PUBLIC_KEY.
case "${1:-}" in
    sshd)
        shift
        mkdir -p ~/.ssh /run/sshd && chmod 700 ~/.ssh
        [ -z "$PUBLIC_KEY" ] || echo "$PUBLIC_KEY" >> ~/.ssh/authorized_keys
        ssh-keygen -A > /dev/null
        exec /usr/sbin/sshd -D -e "$@"
        ;;
    /* | bash | sh | sleep | python | python3) exec "$@" ;;
    *) exec ranks "$@" ;;
esac
