"""`pointsman demo`: the flywheel told as a story on the sandbox, by the code of production. Only traffic is made up.

stage     the processes, the files, the log: what `pointsman up` starts, in a home of its own
measure   what a router would earn on held-out requests that every worker has answered
chapters  the story, chapter by chapter
cpu       the CPU that choosing costs, beside a small language model's
"""
