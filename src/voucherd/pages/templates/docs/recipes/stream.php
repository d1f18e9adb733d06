<?php
$request = ["header" => "Authorization: Bearer " . getenv("KEY"), "timeout" => 30];
$answer = fopen("{url}/api/1.03/event/stream", "r", false, stream_context_create(["http" => $request]));
stream_set_chunk_size($answer, 1); // PHP would gather 8 KB before it hands on a line.
while (($line = fgets($answer)) !== false) {
    if (str_starts_with($line, "data: ")) {
        echo substr($line, 6);
    }
}
